"""Why a task is hard: what its support has and its query lacks, its loss, its number of classes."""
