"""The parts of an installation, the needs of each role, and the command that installs a missing part."""
