// signal
// exit status 1 while in xla:
// seed: 70006
// argument: 0.5 1.5 2
// errors: 0.0
// call: 1x1
func.func public @main(%x0: tensor<?x?xf32>) -> (tensor<?x?xui16>) {
  %t1 = "stablehlo.convert"(%x0) : (tensor<?x?xf32>) -> (tensor<?x?xui16>)
  return %t1 : tensor<?x?xui16>
}
