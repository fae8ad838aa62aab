"""What everything else stands on: errors, options, registries, records, draws, files, the runtime."""
