"""The commands for click logs. The Python functions that they call are in the folder above."""
