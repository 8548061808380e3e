"""The command line's options, in groups by what they are about. Leaves out the commands (main)."""
