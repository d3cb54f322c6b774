// signal
// exit status 1 while in xla:
// seed: 70004
// argument: 0.5 1.5 2
// errors: 0.21760556689612903
// call: 4x1x1
func.func public @main(%x0: tensor<4x1x1xbf16>) -> (tensor<4x1x1xbf16>) {
  %t1 = "stablehlo.exponential_minus_one"(%x0) : (tensor<4x1x1xbf16>) -> (tensor<4x1x1xbf16>)
  return %t1 : tensor<4x1x1xbf16>
}
