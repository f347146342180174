"""What a model takes before it is trained: its parameters, FLOPs, memory and time; and presets."""
