// signal
// exit status 1 while in xla:
// seed: 70005
// argument: 1 4 2
// errors: 0.0
// call: scalar
func.func public @main(%x0: tensor<f16>) -> (tensor<f16>) {
  %t1 = "stablehlo.broadcast_in_dim"(%x0) <{broadcast_dimensions = array<i64>}> : (tensor<f16>) -> (tensor<f16>)
  return %t1 : tensor<f16>
}
