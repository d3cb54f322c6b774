// signal
// exit status 1 while in xla:
// seed: 70003
// argument: 0.5 2 1
// errors: 0.0
// call: 1
func.func public @main(%x0: tensor<?xf32>) -> (tensor<?xf32>) {
  %t2 = "stablehlo.constant"() <{value = dense<0> : tensor<i32>}> : () -> (tensor<i32>)
  %t3 = "stablehlo.reshape"(%t2) : (tensor<i32>) -> (tensor<1xi32>)
  %t4 = "stablehlo.get_dimension_size"(%x0) <{dimension = 0 : i64}> : (tensor<?xf32>) -> (tensor<i32>)
  %t5 = "stablehlo.reshape"(%t4) : (tensor<i32>) -> (tensor<1xi32>)
  %t6 = "stablehlo.constant"() <{value = dense<2> : tensor<i32>}> : () -> (tensor<i32>)
  %t7 = "stablehlo.reshape"(%t6) : (tensor<i32>) -> (tensor<1xi32>)
  %t1 = "stablehlo.real_dynamic_slice"(%x0, %t3, %t5, %t7) : (tensor<?xf32>, tensor<1xi32>, tensor<1xi32>, tensor<1xi32>) -> (tensor<?xf32>)
  return %t1 : tensor<?xf32>
}
