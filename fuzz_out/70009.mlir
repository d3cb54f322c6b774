// signal
// exit status 1 while in xla:
// seed: 70009
// argument: -2 2 1
// errors: 0.0
// call: 1x1
func.func public @main(%x0: tensor<?x1xf64, [@"b", 1]>) -> (tensor<?x1xf64, [@"b", 1]>) {
  %t1 = "stablehlo.floor"(%x0) : (tensor<?x1xf64, [@"b", 1]>) -> (tensor<?x1xf64, [@"b", 1]>)
  return %t1 : tensor<?x1xf64, [@"b", 1]>
}
