"""Rules about the work of devices, and their memory."""
