"""The pages as a tab of TensorBoard; needs the extra `tensorboard`."""
