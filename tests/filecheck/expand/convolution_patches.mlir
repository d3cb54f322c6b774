// RUN: opt --stage simplify --target=cuda:sm_90 --split-input-file %s | filecheck %s

// Windows of 3 x 3 are gathered at computed places, and multiplied by the weights.
func.func @main(%x: tensor<?x?x?x8xf32>, %w: tensor<3x3x8x16xf32>) -> tensor<?x?x?x16xf32> {
  %r = stablehlo.convolution(%x, %w) dim_numbers = [b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f], window = {stride = [2, 1], rhs_dilate = [1, 2]} {batch_group_count = 1 : i64, feature_group_count = 1 : i64} : (tensor<?x?x?x8xf32>, tensor<3x3x8x16xf32>) -> tensor<?x?x?x16xf32>
  return %r : tensor<?x?x?x16xf32>
}
// CHECK-LABEL: func.func @main
// CHECK-NOT: stablehlo.convolution
// CHECK: stablehlo.dynamic_iota %{{.*}}, dim = 0
// CHECK: stablehlo.dynamic_iota %{{.*}}, dim = 2
// CHECK: stablehlo.concatenate {{.*}} dim = 4
// CHECK: "stablehlo.dynamic_gather"({{.*}} collapsed_slice_dims = [1, 2], start_index_map = [1, 2], index_vector_dim = 4
// CHECK: stablehlo.dot_general

// -----
// Few features of the result, and groups: better a loop.
func.func @main(%x: tensor<?x?x?x8xf32>, %w: tensor<3x3x8x15xf32>, %v: tensor<3x3x4x16xf32>) -> (tensor<?x?x?x15xf32>, tensor<?x?x?x16xf32>) {
  %r = stablehlo.convolution(%x, %w) dim_numbers = [b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f], window = {} {batch_group_count = 1 : i64, feature_group_count = 1 : i64} : (tensor<?x?x?x8xf32>, tensor<3x3x8x15xf32>) -> tensor<?x?x?x15xf32>
  %s = stablehlo.convolution(%x, %v) dim_numbers = [b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f], window = {} {batch_group_count = 1 : i64, feature_group_count = 2 : i64} : (tensor<?x?x?x8xf32>, tensor<3x3x4x16xf32>) -> tensor<?x?x?x16xf32>
  return %r, %s : tensor<?x?x?x15xf32>, tensor<?x?x?x16xf32>
}
// CHECK-LABEL: func.func @main
// CHECK-COUNT-2: stablehlo.convolution
// CHECK-NOT: stablehlo.dot_general

// -----
// A window whose size nothing bounds, of which there are as many as one likes: patches would take the square of the input.
func.func @main(%x: tensor<?x?x8xf32>, %w: tensor<?x8x16xf32>) -> tensor<?x?x16xf32> {
  %r = stablehlo.convolution(%x, %w) dim_numbers = [b, 0, f]x[0, i, o]->[b, 0, f], window = {} {batch_group_count = 1 : i64, feature_group_count = 1 : i64} : (tensor<?x?x8xf32>, tensor<?x8x16xf32>) -> tensor<?x?x16xf32>
  return %r : tensor<?x?x16xf32>
}
// CHECK-LABEL: func.func @main
// CHECK: stablehlo.convolution
