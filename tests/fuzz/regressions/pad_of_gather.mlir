// A scalar was read at a position outside of the operand: no lane of the padding's mask needed it.
// seed: 2657
// argument: -2 2 0
// argument: -3 20 0
// argument: 0.5 1.5 2
// errors: 0.0
// call: 1x2 1 scalar
func.func public @main(%x0: tensor<1x2xf32>, %x1: tensor<?xi32>, %x2: tensor<f32>) -> (tensor<?x14xf32>) {
  %t2 = "stablehlo.constant"() <{value = dense<0> : tensor<i32>}> : () -> (tensor<i32>)
  %t3 = "stablehlo.reshape"(%t2) : (tensor<i32>) -> (tensor<1xi32>)
  %t4 = "stablehlo.constant"() <{value = dense<1> : tensor<i32>}> : () -> (tensor<i32>)
  %t5 = "stablehlo.reshape"(%t4) : (tensor<i32>) -> (tensor<1xi32>)
  %t6 = "stablehlo.concatenate"(%t3, %t5) <{dimension = 0 : i64}> : (tensor<1xi32>, tensor<1xi32>) -> (tensor<2xi32>)
  %t1 = "stablehlo.dynamic_gather"(%x0, %x1, %t6) <{dimension_numbers = #stablehlo.gather<offset_dims = [1], collapsed_slice_dims = [1], start_index_map = [1], index_vector_dim = 1>}> : (tensor<1x2xf32>, tensor<?xi32>, tensor<2xi32>) -> (tensor<?x0xf32>)
  %t8 = "stablehlo.get_dimension_size"(%x1) <{dimension = 0 : i64}> : (tensor<?xi32>) -> (tensor<i32>)
  %t9 = "stablehlo.reshape"(%t8) : (tensor<i32>) -> (tensor<1xi32>)
  %t10 = "stablehlo.constant"() <{value = dense<15> : tensor<i32>}> : () -> (tensor<i32>)
  %t11 = "stablehlo.reshape"(%t10) : (tensor<i32>) -> (tensor<1xi32>)
  %t12 = "stablehlo.concatenate"(%t9, %t11) <{dimension = 0 : i64}> : (tensor<1xi32>, tensor<1xi32>) -> (tensor<2xi32>)
  %t13 = "stablehlo.reshape"(%t4) : (tensor<i32>) -> (tensor<1xi32>)
  %t14 = "stablehlo.constant"() <{value = dense<-1> : tensor<i32>}> : () -> (tensor<i32>)
  %t15 = "stablehlo.reshape"(%t14) : (tensor<i32>) -> (tensor<1xi32>)
  %t16 = "stablehlo.concatenate"(%t13, %t15) <{dimension = 0 : i64}> : (tensor<1xi32>, tensor<1xi32>) -> (tensor<2xi32>)
  %t17 = "stablehlo.reshape"(%t2) : (tensor<i32>) -> (tensor<1xi32>)
  %t18 = "stablehlo.reshape"(%t4) : (tensor<i32>) -> (tensor<1xi32>)
  %t19 = "stablehlo.concatenate"(%t17, %t18) <{dimension = 0 : i64}> : (tensor<1xi32>, tensor<1xi32>) -> (tensor<2xi32>)
  %t7 = "stablehlo.dynamic_pad"(%t1, %x2, %t12, %t16, %t19) : (tensor<?x0xf32>, tensor<f32>, tensor<2xi32>, tensor<2xi32>, tensor<2xi32>) -> (tensor<?x14xf32>)
  return %t7 : tensor<?x14xf32>
}
