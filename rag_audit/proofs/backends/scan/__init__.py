"""The scan argument, which proves every score of a large index without a trusted setup (docs/scan/)."""
