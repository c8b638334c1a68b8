"""The paper's intrinsic rewards F, as pure functions; the library's transforms shape them."""
