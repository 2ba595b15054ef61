"""The clocks of the hosts, compared by the calls that their ranks share."""
