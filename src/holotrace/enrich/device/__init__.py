"""What ran on the devices, what launched it, and what it waited for."""
