// RUN: opt --pass-pipeline='annotate,simplify,fuse-groups,func.func(cse),fuse-gemm' --split-input-file %s | filecheck %s

// A loop over the elements of a product becomes its epilogue, which reads tiles of sums.
func.func @main(%x: tensor<?x8xf32, [@s, 8]>, %w: tensor<8x16xf32>) -> tensor<?x16xf32, [@s, 16]> {
  %0 = stablehlo.dot_general %x, %w, contracting_dims = [1] x [0] : (tensor<?x8xf32, [@s, 8]>, tensor<8x16xf32>) -> tensor<?x16xf32, [@s, 16]>
  %1 = stablehlo.tanh %0 : tensor<?x16xf32, [@s, 16]>
  return %1 : tensor<?x16xf32, [@s, 16]>
}
// CHECK-LABEL: func.func @main
// CHECK-NOT: call @dot_0
// CHECK: %[[R:.*]] = call @gemm_0(%arg0, %arg1)
// CHECK: stablehlo.dynamic_reshape %[[R]]
// CHECK: func.func private @[[LOOP:loop_1]]({{.*}} attributes {disc.fusion = #disc.fusion<"epilogue", {collapsed, row = 16 : i64}>} {
// CHECK: func.func private @gemm_0({{.*}} attributes {disc.fusion = #disc.fusion<"gemm", {}>} {
// CHECK-NEXT: call @dot_0(%arg0, %arg1)
// CHECK: call @[[LOOP]]

// -----

// The sums of whole rows lie where the row kernel writes its result, which is of the same type.
func.func @main(%x: tensor<?x8xf32, [@s, 8]>, %w: tensor<8x16xf32>) -> tensor<?x16xf32, [@s, 16]> {
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %0 = stablehlo.dot_general %x, %w, contracting_dims = [1] x [0] : (tensor<?x8xf32, [@s, 8]>, tensor<8x16xf32>) -> tensor<?x16xf32, [@s, 16]>
  %t = stablehlo.reduce(%0 init: %zero) applies stablehlo.add across dimensions = [1] : (tensor<?x16xf32, [@s, 16]>, tensor<f32>) -> tensor<?xf32, [@s]>
  %n = stablehlo.get_dimension_size %x, dim = 0 : (tensor<?x8xf32, [@s, 8]>) -> tensor<i32>
  %n1 = stablehlo.reshape %n : (tensor<i32>) -> tensor<1xi32>
  %c = stablehlo.constant dense<16> : tensor<1xi32>
  %d = stablehlo.concatenate %n1, %c, dim = 0 : (tensor<1xi32>, tensor<1xi32>) -> tensor<2xi32>
  %b = stablehlo.dynamic_broadcast_in_dim %t, %d, dims = [0] : (tensor<?xf32, [@s]>, tensor<2xi32>) -> tensor<?x16xf32, [@s, 16]>
  %1 = stablehlo.divide %0, %b : tensor<?x16xf32, [@s, 16]>
  return %1 : tensor<?x16xf32, [@s, 16]>
}
// CHECK-LABEL: func.func @main
// CHECK-NEXT: %[[R:.*]] = call @gemm_0(%arg0, %arg1)
// CHECK-NEXT: return %[[R]]
// CHECK: func.func private @[[ROWS:row_reduce_1]]({{.*}} attributes {disc.fusion = #disc.fusion<"row_reduce", {accumulators = 0 : i64, collapsed, columns = 1 : i64}>} {
// CHECK: func.func private @gemm_0({{.*}} attributes {disc.fusion = #disc.fusion<"gemm", {}>} {
// CHECK-NEXT: %[[P:.*]] = call @dot_0(%arg0, %arg1)
// CHECK-NEXT: call @[[ROWS]](%[[P]])

// -----

// Products of one left-hand side are computed together.
func.func @main(%x: tensor<?x8xf32, [@s, 8]>, %w: tensor<8x16xf32>, %u: tensor<8x4xf32>) -> (tensor<?x16xf32, [@s, 16]>, tensor<?x4xf32, [@s, 4]>) {
  %0 = stablehlo.dot_general %x, %w, contracting_dims = [1] x [0] : (tensor<?x8xf32, [@s, 8]>, tensor<8x16xf32>) -> tensor<?x16xf32, [@s, 16]>
  %1 = stablehlo.dot_general %x, %u, contracting_dims = [1] x [0] : (tensor<?x8xf32, [@s, 8]>, tensor<8x4xf32>) -> tensor<?x4xf32, [@s, 4]>
  return %0, %1 : tensor<?x16xf32, [@s, 16]>, tensor<?x4xf32, [@s, 4]>
}
// CHECK-LABEL: func.func @main
// CHECK-NEXT: %[[R:.*]]:2 = call @gemm_0(%arg0, %arg1, %arg2)
// CHECK-NEXT: return %[[R]]#0, %[[R]]#1
// CHECK: func.func private @gemm_0({{.*}} attributes {disc.fusion = #disc.fusion<"gemm", {}>} {
// CHECK-NEXT: %[[P:.*]] = call @dot_0(%arg0, %arg1)
// CHECK-NEXT: %[[Q:.*]] = call @dot_1(%arg0, %arg2)
// CHECK-NEXT: return %[[P]], %[[Q]]

// -----

// A product that two kernels read has no epilogue, and one of its result has to wait for it.
func.func @main(%x: tensor<?x8xf32, [@s, 8]>, %w: tensor<8x8xf32>) -> (tensor<?x8xf32, [@s, 8]>, tensor<?x8xf32, [@s, 8]>) {
  %0 = stablehlo.dot_general %x, %w, contracting_dims = [1] x [0] : (tensor<?x8xf32, [@s, 8]>, tensor<8x8xf32>) -> tensor<?x8xf32, [@s, 8]>
  %1 = stablehlo.dot_general %0, %w, contracting_dims = [1] x [0] : (tensor<?x8xf32, [@s, 8]>, tensor<8x8xf32>) -> tensor<?x8xf32, [@s, 8]>
  %2 = stablehlo.tanh %0 : tensor<?x8xf32, [@s, 8]>
  return %1, %2 : tensor<?x8xf32, [@s, 8]>, tensor<?x8xf32, [@s, 8]>
}
// CHECK-LABEL: func.func @main
// CHECK: %[[P:.*]] = call @dot_0(%arg0, %arg1)
// CHECK: call @dot_1(%[[P]], %arg1)
// CHECK: call @loop_2
// CHECK-NOT: "gemm"
// CHECK-NOT: "epilogue"

// -----

// Windows of 3 x 3 over enough features are a GEMM by Winograd's algorithm; a few small windows have a kernel.
func.func @main(%x: tensor<?x8x8x16xf32, [@b, 8, 8, 16]>, %w: tensor<3x3x16x16xf32>, %v: tensor<2x2x16x4xf32>) -> (tensor<?x6x6x16xf32, [@b, 6, 6, 16]>, tensor<?x7x7x4xf32, [@b, 7, 7, 4]>) {
  %0 = stablehlo.convolution(%x, %w) dim_numbers = [b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f], window = {} {batch_group_count = 1 : i64, feature_group_count = 1 : i64} : (tensor<?x8x8x16xf32, [@b, 8, 8, 16]>, tensor<3x3x16x16xf32>) -> tensor<?x6x6x16xf32, [@b, 6, 6, 16]>
  %1 = stablehlo.convolution(%x, %v) dim_numbers = [b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f], window = {} {batch_group_count = 1 : i64, feature_group_count = 1 : i64} : (tensor<?x8x8x16xf32, [@b, 8, 8, 16]>, tensor<2x2x16x4xf32>) -> tensor<?x7x7x4xf32, [@b, 7, 7, 4]>
  return %0, %1 : tensor<?x6x6x16xf32, [@b, 6, 6, 16]>, tensor<?x7x7x4xf32, [@b, 7, 7, 4]>
}
// CHECK-LABEL: func.func @main
// CHECK: func.func private @convolution_0({{.*}} attributes {disc.fusion = #disc.fusion<"convolution", {product = {{.*}}may_transform
// CHECK: func.func private @convolution_1({{.*}} attributes {disc.fusion = #disc.fusion<"convolution", {}>} {
