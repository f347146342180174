"""What training takes before anything is trained: parameters, FLOPs and memory, of presets and studies."""
