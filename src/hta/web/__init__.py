"""The pages that `hta serve` and TensorBoard show; needs the extra `web`."""
