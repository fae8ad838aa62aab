"""Methods of somebody's own: code in files and modules, functions, objects, classifiers of scikit-learn."""
