"""DoorKey, larger and larger."""
