// RUN: opt --stage simplify --split-input-file %s | filecheck %s

// A product of a weight whose result is transposed has its operands exchanged.
func.func @main(%w: tensor<8x6xf32>, %x: tensor<?x6xf32, [@b, 6]>) -> tensor<?x8xf32> {
  %h = stablehlo.tanh %x : tensor<?x6xf32, [@b, 6]>
  %p = stablehlo.dot_general %w, %h, contracting_dims = [1] x [1] : (tensor<8x6xf32>, tensor<?x6xf32, [@b, 6]>) -> tensor<8x?xf32>
  %t = stablehlo.transpose %p, dims = [1, 0] : (tensor<8x?xf32>) -> tensor<?x8xf32>
  return %t : tensor<?x8xf32>
}
// CHECK-LABEL: func.func @main
// CHECK: %[[H:.*]] = stablehlo.tanh %arg1
// CHECK: stablehlo.dot_general %[[H]], %arg0, contracting_dims = [1] x [1]
// CHECK-NOT: stablehlo.transpose

// -----

// So have products that are cut and added up before: each slice, each sum and a splat are transposed instead.
func.func @main(%w: tensor<8x6xf32>, %x: tensor<?x6xf32, [@b, 6]>) -> (tensor<?x4xf32>, tensor<?x4xf32>) {
  %h = stablehlo.tanh %x : tensor<?x6xf32, [@b, 6]>
  %p = stablehlo.dot_general %w, %h, contracting_dims = [1] x [1] : (tensor<8x6xf32>, tensor<?x6xf32, [@b, 6]>) -> tensor<8x?xf32>
  %c = stablehlo.constant dense<2.0> : tensor<f32>
  %n = stablehlo.get_dimension_size %x, dim = 0 : (tensor<?x6xf32, [@b, 6]>) -> tensor<i32>
  %n1 = stablehlo.reshape %n : (tensor<i32>) -> tensor<1xi32>
  %four = stablehlo.constant dense<4> : tensor<1xi32>
  %eight = stablehlo.constant dense<8> : tensor<1xi32>
  %zero = stablehlo.constant dense<0> : tensor<1xi32>
  %one = stablehlo.constant dense<1> : tensor<2xi32>
  %s0 = stablehlo.concatenate %zero, %zero, dim = 0 : (tensor<1xi32>, tensor<1xi32>) -> tensor<2xi32>
  %l0 = stablehlo.concatenate %four, %n1, dim = 0 : (tensor<1xi32>, tensor<1xi32>) -> tensor<2xi32>
  %s1 = stablehlo.concatenate %four, %zero, dim = 0 : (tensor<1xi32>, tensor<1xi32>) -> tensor<2xi32>
  %l1 = stablehlo.concatenate %eight, %n1, dim = 0 : (tensor<1xi32>, tensor<1xi32>) -> tensor<2xi32>
  %a = stablehlo.real_dynamic_slice %p, %s0, %l0, %one : (tensor<8x?xf32>, tensor<2xi32>, tensor<2xi32>, tensor<2xi32>) -> tensor<4x?xf32>
  %d = stablehlo.real_dynamic_slice %p, %s1, %l1, %one : (tensor<8x?xf32>, tensor<2xi32>, tensor<2xi32>, tensor<2xi32>) -> tensor<4x?xf32>
  %cb = stablehlo.dynamic_broadcast_in_dim %c, %l0, dims = [] : (tensor<f32>, tensor<2xi32>) -> tensor<4x?xf32>
  %m = stablehlo.multiply %d, %cb : tensor<4x?xf32>
  %ta = stablehlo.transpose %a, dims = [1, 0] : (tensor<4x?xf32>) -> tensor<?x4xf32>
  %tm = stablehlo.transpose %m, dims = [1, 0] : (tensor<4x?xf32>) -> tensor<?x4xf32>
  return %ta, %tm : tensor<?x4xf32>, tensor<?x4xf32>
}
// CHECK-LABEL: func.func @main
// CHECK: stablehlo.dot_general %{{.*}}, %arg0, contracting_dims = [1] x [1]
// CHECK-NOT: stablehlo.dot_general
// CHECK-NOT: stablehlo.transpose
// CHECK: return

// -----

// A result that is read as it is, too, stays.
func.func @main(%w: tensor<8x6xf32>, %x: tensor<?x6xf32, [@b, 6]>) -> (tensor<?x8xf32>, tensor<8x?xf32>) {
  %h = stablehlo.tanh %x : tensor<?x6xf32, [@b, 6]>
  %p = stablehlo.dot_general %w, %h, contracting_dims = [1] x [1] : (tensor<8x6xf32>, tensor<?x6xf32, [@b, 6]>) -> tensor<8x?xf32>
  %e = stablehlo.exponential %p : tensor<8x?xf32>
  %t = stablehlo.transpose %p, dims = [1, 0] : (tensor<8x?xf32>) -> tensor<?x8xf32>
  return %t, %e : tensor<?x8xf32>, tensor<8x?xf32>
}
// CHECK-LABEL: func.func @main
// CHECK: stablehlo.dot_general %arg0,
// CHECK: stablehlo.transpose

// -----

// A weight on the right stays there.
func.func @main(%w: tensor<8x6xf32>, %x: tensor<?x6xf32, [@b, 6]>) -> tensor<8x?xf32> {
  %h = stablehlo.tanh %x : tensor<?x6xf32, [@b, 6]>
  %p = stablehlo.dot_general %h, %w, contracting_dims = [1] x [1] : (tensor<?x6xf32, [@b, 6]>, tensor<8x6xf32>) -> tensor<?x8xf32>
  %t = stablehlo.transpose %p, dims = [1, 0] : (tensor<?x8xf32>) -> tensor<8x?xf32>
  return %t : tensor<8x?xf32>
}
// CHECK-LABEL: func.func @main
// CHECK: stablehlo.dot_general %{{.*}}, %arg0,
// CHECK: stablehlo.transpose

// -----

// A product of two computed values stays.
func.func @main(%w: tensor<8x6xf32>, %x: tensor<?x6xf32, [@b, 6]>) -> tensor<?x8xf32> {
  %h = stablehlo.tanh %x : tensor<?x6xf32, [@b, 6]>
  %v = stablehlo.sine %w : tensor<8x6xf32>
  %p = stablehlo.dot_general %v, %h, contracting_dims = [1] x [1] : (tensor<8x6xf32>, tensor<?x6xf32, [@b, 6]>) -> tensor<8x?xf32>
  %t = stablehlo.transpose %p, dims = [1, 0] : (tensor<8x?xf32>) -> tensor<?x8xf32>
  return %t : tensor<?x8xf32>
}
// CHECK-LABEL: func.func @main
// CHECK: %[[V:.*]] = stablehlo.sine
// CHECK: stablehlo.dot_general %[[V]],
// CHECK: stablehlo.transpose
