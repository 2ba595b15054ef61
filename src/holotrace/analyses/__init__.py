"""One question a file: a frozen result, the function that answers, no plotting. None imports another."""
