// A scalar was read at a position outside of the operand: no lane of the padding's mask needed it.
// seed: 1
// argument: -2 2 0
// errors: 0.0
// call: 1
// call: 17
func.func public @main(%x0: tensor<?xf32>) -> (tensor<?x?xf32>) {
  %t1 = stablehlo.constant dense<0.0> : tensor<f32>
  %t2 = stablehlo.get_dimension_size %x0, dim = 0 : (tensor<?xf32>) -> tensor<i32>
  %t3 = stablehlo.reshape %t2 : (tensor<i32>) -> tensor<1xi32>
  %t4 = stablehlo.concatenate %t3, %t3, dim = 0 : (tensor<1xi32>, tensor<1xi32>) -> tensor<2xi32>
  %t5 = stablehlo.dynamic_broadcast_in_dim %x0, %t4, dims = [0] : (tensor<?xf32>, tensor<2xi32>) -> tensor<?x?xf32>
  %t6 = stablehlo.pad %t5, %t1, low = [0, 0], high = [3, 3], interior = [0, 0] : (tensor<?x?xf32>, tensor<f32>) -> tensor<?x?xf32>
  return %t6 : tensor<?x?xf32>
}
