// RUN: opt --stage simplify --split-input-file %s | filecheck %s

// A product reads a transposed operand where it lies.
func.func @main(%x: tensor<?x?xf32, [@b, @k]>, %w: tensor<64x?xf32, [64, @k]>) -> tensor<?x64xf32> {
  %t = stablehlo.transpose %w, dims = [1, 0] : (tensor<64x?xf32, [64, @k]>) -> tensor<?x64xf32>
  %0 = stablehlo.dot_general %x, %t, contracting_dims = [1] x [0] : (tensor<?x?xf32, [@b, @k]>, tensor<?x64xf32>) -> tensor<?x64xf32>
  return %0 : tensor<?x64xf32>
}
// CHECK-LABEL: func.func @main
// CHECK-NOT: stablehlo.transpose
// CHECK: stablehlo.dot_general %arg0, %arg1, contracting_dims = [1] x [1]

// -----

// A transpose that changes the order of the free sizes stays.
func.func @main(%x: tensor<?x?xf32, [@b, @k]>, %w: tensor<2x?x3xf32, [2, @k, 3]>) -> tensor<?x3x2xf32> {
  %t = stablehlo.transpose %w, dims = [1, 2, 0] : (tensor<2x?x3xf32, [2, @k, 3]>) -> tensor<?x3x2xf32>
  %0 = stablehlo.dot_general %x, %t, contracting_dims = [1] x [0] : (tensor<?x?xf32, [@b, @k]>, tensor<?x3x2xf32>) -> tensor<?x3x2xf32>
  return %0 : tensor<?x3x2xf32>
}
// CHECK-LABEL: func.func @main
// CHECK: %[[T:.*]] = stablehlo.transpose %arg1, dims = [1, 2, 0]
// CHECK: stablehlo.dot_general %arg0, %[[T]], contracting_dims = [1] x [0]

// -----

// The axes of a batch keep their pairs.
func.func @main(%x: tensor<?x4x?xf32, [@b, 4, @k]>, %y: tensor<4x?x?x3xf32, [4, @b, @k, 3]>) -> tensor<?x4x3xf32> {
  %t = stablehlo.transpose %x, dims = [1, 0, 2] : (tensor<?x4x?xf32, [@b, 4, @k]>) -> tensor<4x?x?xf32>
  %0 = stablehlo.dot_general %t, %y, batching_dims = [1, 0] x [1, 0], contracting_dims = [2] x [2] : (tensor<4x?x?xf32>, tensor<4x?x?x3xf32, [4, @b, @k, 3]>) -> tensor<?x4x3xf32>
  return %0 : tensor<?x4x3xf32>
}
// CHECK-LABEL: func.func @main
// CHECK-NOT: stablehlo.transpose
// CHECK: stablehlo.dot_general %arg0, %arg1, batching_dims = [0, 1] x [1, 0], contracting_dims = [2] x [2]

// -----

// Without rows and columns it is a reduction of products, where the left side lies.
func.func @main(%x: tensor<?x4x?xbf16, [@b, 4, @k]>, %y: tensor<4x?x?xbf16, [4, @b, @k]>) -> tensor<4x?xf32> {
  %0 = stablehlo.dot_general %x, %y, batching_dims = [1, 0] x [0, 1], contracting_dims = [2] x [2] : (tensor<?x4x?xbf16, [@b, 4, @k]>, tensor<4x?x?xbf16, [4, @b, @k]>) -> tensor<4x?xf32>
  return %0 : tensor<4x?xf32>
}
// CHECK-LABEL: func.func @main
// CHECK-DAG: %[[Y:.*]] = stablehlo.transpose %arg1, dims = [1, 0, 2]
// CHECK: %[[P:.*]] = stablehlo.multiply %{{.*}}, %{{.*}} : tensor<?x4x?xf32, [@b, 4, @k]>
// CHECK: %[[R:.*]] = stablehlo.reduce(%[[P]] init: %{{.*}}) applies stablehlo.add across dimensions = [2]
// CHECK: stablehlo.transpose %[[R]], dims = [1, 0]

// -----

// A product of narrow floats is one of f32, rounded once.
func.func @main(%x: tensor<?x8xbf16, [@b, 8]>, %w: tensor<8x16xbf16>) -> tensor<?x16xbf16> {
  %0 = stablehlo.dot_general %x, %w, contracting_dims = [1] x [0] : (tensor<?x8xbf16, [@b, 8]>, tensor<8x16xbf16>) -> tensor<?x16xbf16>
  return %0 : tensor<?x16xbf16>
}
// CHECK-LABEL: func.func @main
// CHECK: %[[D:.*]] = stablehlo.dot_general %arg0, %arg1, contracting_dims = [1] x [0] : {{.*}} -> tensor<?x16xf32, [@b, 16]>
// CHECK: stablehlo.convert %[[D]] : (tensor<?x16xf32, [@b, 16]>) -> tensor<?x16xbf16, [@b, 16]>

// -----

// One whose result is wide already is left alone.
func.func @main(%x: tensor<?x8xbf16, [@b, 8]>, %w: tensor<8x16xbf16>) -> tensor<?x16xf32> {
  %0 = stablehlo.dot_general %x, %w, contracting_dims = [1] x [0] : (tensor<?x8xbf16, [@b, 8]>, tensor<8x16xbf16>) -> tensor<?x16xf32>
  return %0 : tensor<?x16xf32>
}
// CHECK-LABEL: func.func @main
// CHECK-NOT: stablehlo.convert
// CHECK: stablehlo.dot_general {{.*}} -> tensor<?x16xf32, [@b, 16]>

// -----

// A narrow product that is transposed is transposed before it is rounded, so that the product writes it so.
func.func @main(%x: tensor<?x8xf16, [@b, 8]>, %w: tensor<8x16xf16>) -> tensor<16x?xf16> {
  %0 = stablehlo.dot_general %x, %w, contracting_dims = [1] x [0] : (tensor<?x8xf16, [@b, 8]>, tensor<8x16xf16>) -> tensor<?x16xf16>
  %1 = stablehlo.transpose %0, dims = [1, 0] : (tensor<?x16xf16>) -> tensor<16x?xf16>
  return %1 : tensor<16x?xf16>
}
// CHECK-LABEL: func.func @main
// CHECK: %[[D:.*]] = stablehlo.dot_general
// CHECK: %[[T:.*]] = stablehlo.transpose %[[D]], dims = [1, 0] : {{.*}} -> tensor<16x?xf32, [16, @b]>
// CHECK: stablehlo.convert %[[T]] : {{.*}} -> tensor<16x?xf16, [16, @b]>
