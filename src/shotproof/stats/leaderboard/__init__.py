"""Many classifiers on the same task sets: ranks as far as an interval tells, fronts and correlations."""
