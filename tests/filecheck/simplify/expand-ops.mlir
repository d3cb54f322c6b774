// RUN: opt --pass-pipeline='annotate,expand-ops' --split-input-file %s | filecheck %s

// A sort along the first axis is one along the last axis, between two transposes.
func.func @main(%x: tensor<?x?xf32, [@a, @b]>) -> tensor<?x?xf32, [@a, @b]> {
  %0 = "stablehlo.sort"(%x) <{dimension = 0 : i64, is_stable = true}> ({
  ^bb0(%p: tensor<f32>, %q: tensor<f32>):
    %1 = stablehlo.compare LT, %p, %q : (tensor<f32>, tensor<f32>) -> tensor<i1>
    stablehlo.return %1 : tensor<i1>
  }) : (tensor<?x?xf32, [@a, @b]>) -> tensor<?x?xf32, [@a, @b]>
  return %0 : tensor<?x?xf32, [@a, @b]>
}
// CHECK-LABEL: func.func @main
// CHECK: %[[T:.*]] = stablehlo.transpose %arg0, dims = [1, 0]
// CHECK: %[[S:.*]] = "stablehlo.sort"(%[[T]]) <{dimension = 1 : i64, is_stable = true}>
// CHECK: %[[R:.*]] = stablehlo.transpose %[[S]], dims = [1, 0]
// CHECK-NEXT: return %[[R]]

// -----

// One along the last axis is left alone.
func.func @main(%x: tensor<?x?xf32, [@a, @b]>) -> tensor<?x?xf32, [@a, @b]> {
  %0 = "stablehlo.sort"(%x) <{dimension = 1 : i64, is_stable = true}> ({
  ^bb0(%p: tensor<f32>, %q: tensor<f32>):
    %1 = stablehlo.compare LT, %p, %q : (tensor<f32>, tensor<f32>) -> tensor<i1>
    stablehlo.return %1 : tensor<i1>
  }) : (tensor<?x?xf32, [@a, @b]>) -> tensor<?x?xf32, [@a, @b]>
  return %0 : tensor<?x?xf32, [@a, @b]>
}
// CHECK-LABEL: func.func @main
// CHECK-NOT: stablehlo.transpose
// CHECK: %[[S:.*]] = "stablehlo.sort"(%arg0) <{dimension = 1 : i64, is_stable = true}>
// CHECK-NOT: stablehlo.transpose
// CHECK: return %[[S]]

// -----

// The factors of a product of two element types are converted to the type of the sums.
func.func @main(%x: tensor<?x8xbf16, [@b, 8]>, %w: tensor<8x4xf16>) -> tensor<?x4xf32, [@b, 4]> {
  %0 = stablehlo.dot_general %x, %w, contracting_dims = [1] x [0] : (tensor<?x8xbf16, [@b, 8]>, tensor<8x4xf16>) -> tensor<?x4xf32, [@b, 4]>
  return %0 : tensor<?x4xf32, [@b, 4]>
}
// CHECK-LABEL: func.func @main
// CHECK: %[[X:.*]] = stablehlo.convert %arg0 : {{.*}} -> tensor<?x8xf32, [@b, 8]>
// CHECK: %[[W:.*]] = stablehlo.convert %arg1 : {{.*}} -> tensor<8x4xf32>
// CHECK: stablehlo.dot_general %[[X]], %[[W]], contracting_dims = [1] x [0]

// -----

// Those of one type stay as they are, also where the sums are of another.
func.func @main(%x: tensor<?x8xbf16, [@b, 8]>, %w: tensor<8x4xbf16>) -> tensor<?x4xf32, [@b, 4]> {
  %0 = stablehlo.dot_general %x, %w, contracting_dims = [1] x [0] : (tensor<?x8xbf16, [@b, 8]>, tensor<8x4xbf16>) -> tensor<?x4xf32, [@b, 4]>
  return %0 : tensor<?x4xf32, [@b, 4]>
}
// CHECK-LABEL: func.func @main
// CHECK-NOT: stablehlo.convert
// CHECK: stablehlo.dot_general %arg0, %arg1, contracting_dims = [1] x [0]
