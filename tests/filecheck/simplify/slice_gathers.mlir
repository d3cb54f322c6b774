// RUN: opt --pass-pipeline='annotate,slice-gathers' --split-input-file %s | filecheck %s

// Backwards by a stride; the indices are a column.
func.func @main(%x: tensor<9x4xf32>) -> tensor<3x4xf32> {
  %i = stablehlo.iota dim = 0 : tensor<3xi64>
  %threes = stablehlo.constant dense<-3> : tensor<3xi64>
  %start = stablehlo.constant dense<7> : tensor<3xi64>
  %down = stablehlo.multiply %i, %threes : tensor<3xi64>
  %at = stablehlo.add %start, %down : tensor<3xi64>
  %column = stablehlo.reshape %at : (tensor<3xi64>) -> tensor<3x1xi64>
  %g = "stablehlo.gather"(%x, %column) <{dimension_numbers = #stablehlo.gather<offset_dims = [1], collapsed_slice_dims = [0], start_index_map = [0], index_vector_dim = 1>, slice_sizes = array<i64: 1, 4>}> : (tensor<9x4xf32>, tensor<3x1xi64>) -> tensor<3x4xf32>
  return %g : tensor<3x4xf32>
}
// CHECK-LABEL: func.func @main
// CHECK: "disc.shape"() {dims = [1, 0]}
// CHECK: "disc.shape"() {dims = [8, 4]}
// CHECK: "disc.shape"() {dims = [3, 1]}
// CHECK: %[[S:.*]] = stablehlo.real_dynamic_slice %arg0
// CHECK: stablehlo.reverse %[[S]], dims = [0]

// -----

// Part of the other axis: no slice along one.
func.func @main(%x: tensor<9x4xf32>) -> tensor<3x2xf32> {
  %i = stablehlo.iota dim = 0 : tensor<3xi64>
  %g = "stablehlo.gather"(%x, %i) <{dimension_numbers = #stablehlo.gather<offset_dims = [1], collapsed_slice_dims = [0], start_index_map = [0], index_vector_dim = 1>, slice_sizes = array<i64: 1, 2>}> : (tensor<9x4xf32>, tensor<3xi64>) -> tensor<3x2xf32>
  return %g : tensor<3x2xf32>
}
// CHECK-LABEL: func.func @main
// CHECK: stablehlo.gather

// -----

// Integers of 8 bits may wrap around.
func.func @main(%x: tensor<400x4xf32>) -> tensor<100x4xf32> {
  %i = stablehlo.iota dim = 0 : tensor<100xi8>
  %twos = stablehlo.constant dense<2> : tensor<100xi8>
  %at = stablehlo.multiply %i, %twos : tensor<100xi8>
  %wide = stablehlo.convert %at : (tensor<100xi8>) -> tensor<100xi32>
  %g = "stablehlo.gather"(%x, %wide) <{dimension_numbers = #stablehlo.gather<offset_dims = [1], collapsed_slice_dims = [0], start_index_map = [0], index_vector_dim = 1>, slice_sizes = array<i64: 1, 4>}> : (tensor<400x4xf32>, tensor<100xi32>) -> tensor<100x4xf32>
  return %g : tensor<100x4xf32>
}
// CHECK-LABEL: func.func @main
// CHECK: stablehlo.gather

// -----

// Of an empty list with a stride, the end would lie before the start.
func.func @main(%x: tensor<?x4xf32, [@"2*s", 4]>) -> tensor<?x4xf32> {
  %n = "disc.shape"() {dims = [@s]} : () -> tensor<1xi32>
  %i = stablehlo.dynamic_iota %n, dim = 0 : (tensor<1xi32>) -> tensor<?xi32, [@s]>
  %sum = stablehlo.add %i, %i : tensor<?xi32, [@s]>
  %sizes = "disc.shape"() {dims = [1, 4]} : () -> tensor<2xi32>
  %g = "stablehlo.dynamic_gather"(%x, %sum, %sizes) <{dimension_numbers = #stablehlo.gather<offset_dims = [1], collapsed_slice_dims = [0], start_index_map = [0], index_vector_dim = 1>}> : (tensor<?x4xf32, [@"2*s", 4]>, tensor<?xi32, [@s]>, tensor<2xi32>) -> tensor<?x4xf32>
  return %g : tensor<?x4xf32>
}
// CHECK-LABEL: func.func @main
// CHECK: stablehlo.dynamic_gather
