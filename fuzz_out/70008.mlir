// signal
// exit status 1 while in xla:
// seed: 70008
// argument: 0 8 0
// argument: -4 4 1
// argument: -4 4 0
// argument: 0 40 0
// errors: 0.0
// call: 1x1 1x0 scalar scalar
func.func public @main(%x0: tensor<?x?xf32>, %x1: tensor<?x0xf32>, %x2: tensor<i32>, %x3: tensor<i32>) -> (tensor<?x?xf32>) {
  %t1 = "stablehlo.dynamic_update_slice"(%x0, %x1, %x2, %x3) : (tensor<?x?xf32>, tensor<?x0xf32>, tensor<i32>, tensor<i32>) -> (tensor<?x?xf32>)
  return %t1 : tensor<?x?xf32>
}
