// signal
// exit status 1 while in xla:
// seed: 70007
// argument: 0 3 0
// errors: 0.0
// call: scalar
func.func public @main(%x0: tensor<i32>) -> (tensor<i32>) {
  %t1 = "stablehlo.minimum"(%x0, %x0) : (tensor<i32>, tensor<i32>) -> (tensor<i32>)
  return %t1 : tensor<i32>
}
