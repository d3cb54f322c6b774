// RUN: opt --pass-pipeline='annotate,simplify' --target=cuda:sm_90 --split-input-file %s | filecheck %s

// An axis of size 1 that one side has alone is no axis of the product, nor of the transpose behind it.
func.func @main(%x: tensor<2x?x1x8xf32, [2, @q, 1, 8]>, %y: tensor<2x?x8xf32, [2, @k, 8]>) -> tensor<2x?x1x?xf32, [2, @k, 1, @q]> {
  %p = stablehlo.dot_general %x, %y, batching_dims = [0] x [0], contracting_dims = [3] x [2] : (tensor<2x?x1x8xf32, [2, @q, 1, 8]>, tensor<2x?x8xf32, [2, @k, 8]>) -> tensor<2x?x1x?xf32, [2, @q, 1, @k]>
  %t = stablehlo.transpose %p, dims = [0, 3, 2, 1] : (tensor<2x?x1x?xf32, [2, @q, 1, @k]>) -> tensor<2x?x1x?xf32, [2, @k, 1, @q]>
  return %t : tensor<2x?x1x?xf32, [2, @k, 1, @q]>
}
// CHECK-LABEL: func.func @main
// CHECK: %[[X:.*]] = stablehlo.dynamic_reshape %arg0, {{.*}} -> tensor<2x?x8xf32, [2, @q, 8]>
// CHECK: %[[P:.*]] = stablehlo.dot_general %[[X]], %arg1, {{.*}} -> tensor<2x?x?xf32, [2, @q, @k]>
// CHECK: %[[T:.*]] = stablehlo.transpose %[[P]], dims = [0, 2, 1]
// CHECK: stablehlo.dynamic_reshape %[[T]]

// -----

// The scaling of a product comes behind its transpose, which the product can write.
func.func @main(%x: tensor<?x8xf32, [@q, 8]>, %y: tensor<?x8xf32, [@k, 8]>) -> tensor<?x?xf32, [@k, @q]> {
  %c = stablehlo.constant dense<0.5> : tensor<f32>
  %p = stablehlo.dot_general %x, %y, contracting_dims = [1] x [1] : (tensor<?x8xf32, [@q, 8]>, tensor<?x8xf32, [@k, 8]>) -> tensor<?x?xf32, [@q, @k]>
  %n = stablehlo.get_dimension_size %p, dim = 0 : (tensor<?x?xf32, [@q, @k]>) -> tensor<i32>
  %m = stablehlo.get_dimension_size %p, dim = 1 : (tensor<?x?xf32, [@q, @k]>) -> tensor<i32>
  %n1 = stablehlo.reshape %n : (tensor<i32>) -> tensor<1xi32>
  %m1 = stablehlo.reshape %m : (tensor<i32>) -> tensor<1xi32>
  %d = stablehlo.concatenate %n1, %m1, dim = 0 : (tensor<1xi32>, tensor<1xi32>) -> tensor<2xi32>
  %b = stablehlo.dynamic_broadcast_in_dim %c, %d, dims = [] : (tensor<f32>, tensor<2xi32>) -> tensor<?x?xf32, [@q, @k]>
  %s = stablehlo.multiply %p, %b : tensor<?x?xf32, [@q, @k]>
  %t = stablehlo.transpose %s, dims = [1, 0] : (tensor<?x?xf32, [@q, @k]>) -> tensor<?x?xf32, [@k, @q]>
  return %t : tensor<?x?xf32, [@k, @q]>
}
// CHECK-LABEL: func.func @main
// CHECK: %[[P:.*]] = stablehlo.dot_general
// CHECK: %[[T:.*]] = stablehlo.transpose %[[P]], dims = [1, 0]
// CHECK: stablehlo.multiply %[[T]]
