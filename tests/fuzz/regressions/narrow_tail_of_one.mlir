// A tail of one narrow integer was stored at the width that it had before its truncation.
// seed: 1
// argument: 0 18446744073709551615 0
// errors: 0.0
// call: 3
func.func public @main(%x0: tensor<3xui64>) -> (tensor<3x17xui16>) {
  %t1, %t2 = "stablehlo.rng_bit_generator"(%x0) <{rng_algorithm = #stablehlo<rng_algorithm PHILOX>}> : (tensor<3xui64>) -> (tensor<3xui64>, tensor<3x17xui16>)
  return %t2 : tensor<3x17xui16>
}
