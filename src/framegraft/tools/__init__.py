"""What people use to look into the engine: nothing of it is imported until it is asked for."""
