// RUN: opt --pass-pipeline='erase-unused-sizes' --split-input-file %s | filecheck %s

// A chain of arithmetic on sizes that nothing reads is gone. (The import has erased the last op of each chain.)
func.func @main(%x: tensor<?x4xf32, [@b, 4]>) -> tensor<?x4xf32> {
  %n = stablehlo.get_dimension_size %x, dim = 0 : (tensor<?x4xf32, [@b, 4]>) -> tensor<i32>
  %four = stablehlo.constant dense<4> : tensor<i32>
  %0 = stablehlo.multiply %n, %four : tensor<i32>
  %1 = stablehlo.reshape %0 : (tensor<i32>) -> tensor<1xi32>
  %2 = stablehlo.tanh %x : (tensor<?x4xf32, [@b, 4]>) -> tensor<?x4xf32>
  return %2 : tensor<?x4xf32>
}
// CHECK-LABEL: func.func @main
// CHECK-NEXT: %[[T:.*]] = stablehlo.tanh %arg0
// CHECK-NEXT: return %[[T]]

// -----

// What a reshape reads stays; what else is computed of the same size goes.
func.func @main(%x: tensor<?x4xf32, [@b, 4]>) -> tensor<?xf32> {
  %n = stablehlo.get_dimension_size %x, dim = 0 : (tensor<?x4xf32, [@b, 4]>) -> tensor<i32>
  %four = stablehlo.constant dense<4> : tensor<i32>
  %0 = stablehlo.multiply %n, %four : tensor<i32>
  %1 = stablehlo.reshape %0 : (tensor<i32>) -> tensor<1xi32>
  %2 = stablehlo.add %n, %four : tensor<i32>
  %last = stablehlo.negate %2 : tensor<i32>
  %3 = stablehlo.dynamic_reshape %x, %1 : (tensor<?x4xf32, [@b, 4]>, tensor<1xi32>) -> tensor<?xf32>
  return %3 : tensor<?xf32>
}
// CHECK-LABEL: func.func @main
// CHECK-NEXT: %[[N:.*]] = stablehlo.get_dimension_size %arg0, dim = 0
// CHECK-NEXT: %[[FOUR:.*]] = stablehlo.constant dense<4>
// CHECK-NEXT: %[[P:.*]] = stablehlo.multiply %[[N]], %[[FOUR]]
// CHECK-NEXT: %[[S:.*]] = stablehlo.reshape %[[P]]
// CHECK-NEXT: stablehlo.dynamic_reshape %arg0, %[[S]]

// -----

// Floats, and more integers than a shape has, are data, which this pass leaves alone; 64 integers may be a shape.
func.func @main(%x: tensor<?xf32, [@b]>, %i: tensor<65xi32>, %j: tensor<64xi32>) -> tensor<?xf32, [@b]> {
  %n = stablehlo.get_dimension_size %x, dim = 0 : (tensor<?xf32, [@b]>) -> tensor<i32>
  %0 = stablehlo.convert %n : (tensor<i32>) -> tensor<f32>
  %1 = stablehlo.negate %i : tensor<65xi32>
  %2 = stablehlo.negate %j : tensor<64xi32>
  %last0 = stablehlo.negate %0 : tensor<f32>
  %last1 = stablehlo.abs %1 : tensor<65xi32>
  %last2 = stablehlo.abs %2 : tensor<64xi32>
  return %x : tensor<?xf32, [@b]>
}
// CHECK-LABEL: func.func @main
// CHECK-NEXT: %[[N:.*]] = stablehlo.get_dimension_size %arg0, dim = 0
// CHECK-NEXT: stablehlo.convert %[[N]] : (tensor<i32>) -> tensor<f32>
// CHECK-NEXT: stablehlo.negate %arg1 : tensor<65xi32>
// CHECK-NEXT: return %arg0

// -----

// A size that only a branch reads is read.
func.func @main(%x: tensor<?xf32, [@b]>, %i: tensor<i32>, %p: tensor<i1>) -> tensor<i32> {
  %n = stablehlo.get_dimension_size %x, dim = 0 : (tensor<?xf32, [@b]>) -> tensor<i32>
  %0 = "stablehlo.if"(%p) ({
    stablehlo.return %n : tensor<i32>
  }, {
    stablehlo.return %i : tensor<i32>
  }) : (tensor<i1>) -> tensor<i32>
  return %0 : tensor<i32>
}
// CHECK-LABEL: func.func @main
// CHECK-NEXT: %[[N:.*]] = stablehlo.get_dimension_size %arg0, dim = 0
// CHECK: stablehlo.return %[[N]]
