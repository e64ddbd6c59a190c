"""The commands for click logs. The Python functions behind the commands are in `clickgym.logs`."""
