"""keras.ops.image."""
