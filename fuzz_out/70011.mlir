// signal
// exit status 1 while in xla:
// seed: 70011
// argument: 1 9 0
// errors: 0.0
// call: 3x2x1x1
func.func public @main(%x0: tensor<3x?x?x1xui8>) -> (tensor<3x?x?x1xui8>) {
  %t1 = "stablehlo.count_leading_zeros"(%x0) : (tensor<3x?x?x1xui8>) -> (tensor<3x?x?x1xui8>)
  return %t1 : tensor<3x?x?x1xui8>
}
