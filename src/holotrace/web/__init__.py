"""The pages that `holotrace serve` and TensorBoard show; needs the extra `web`."""
