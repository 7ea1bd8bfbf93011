"""What an installation has, what each role needs of it, and the command that brings what is missing."""
