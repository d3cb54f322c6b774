// signal
// exit status 1 while in xla:
// seed: 70010
// argument: 0 1 0
// argument: 0 40 0
// errors: 0.0
// call: 1x1x2 1
func.func public @main(%x0: tensor<?x?x2xi1, [@"s", @"b", 2]>, %x1: tensor<?xi32, [@"s"]>) -> (tensor<?x1x2xi1, [@"s", 1, 2]>) {
  %t1 = "stablehlo.gather"(%x0, %x1) <{dimension_numbers = #stablehlo.gather<offset_dims = [1, 2], collapsed_slice_dims = [1], start_index_map = [1], index_vector_dim = 1>, slice_sizes = array<i64: 1, 1, 2>}> : (tensor<?x?x2xi1, [@"s", @"b", 2]>, tensor<?xi32, [@"s"]>) -> (tensor<?x1x2xi1, [@"s", 1, 2]>)
  return %t1 : tensor<?x1x2xi1, [@"s", 1, 2]>
}
