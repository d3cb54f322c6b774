// signal
// exit status 1 while in xla:
// seed: 70001
// argument: -4 4 1
// argument: 1 4 2
// errors: 0.0
// call: scalar scalar
func.func public @main(%x0: tensor<bf16>, %x1: tensor<bf16>) -> (tensor<bf16>) {
  %t1 = "stablehlo.add"(%x0, %x1) : (tensor<bf16>, tensor<bf16>) -> (tensor<bf16>)
  return %t1 : tensor<bf16>
}
