// signal
// exit status 1 while in xla:
// seed: 70000
// argument: 1 4 2
// argument: 0 1 0
// errors: 0.0
// call: 1x1 1
func.func public @main(%x0: tensor<?x?xf32, [@"n*s", @"s"]>, %x1: tensor<?xi1, [@"n"]>) -> (tensor<?x?xf32, [@"n*s", @"s"]>) {
  %t1 = "stablehlo.round_nearest_even"(%x0) : (tensor<?x?xf32, [@"n*s", @"s"]>) -> (tensor<?x?xf32, [@"n*s", @"s"]>)
  return %t1 : tensor<?x?xf32, [@"n*s", @"s"]>
}
