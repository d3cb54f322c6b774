// RUN: opt --pass-pipeline='annotate,materialize-shapes' --split-input-file %s | filecheck %s

// Arithmetic on sizes becomes the list of sizes that it gives, and nothing else is left of it.
func.func @main(%x: tensor<?x4xf32, [@b, 4]>) -> tensor<?xf32> {
  %n = stablehlo.get_dimension_size %x, dim = 0 : (tensor<?x4xf32, [@b, 4]>) -> tensor<i32>
  %four = stablehlo.constant dense<4> : tensor<i32>
  %0 = stablehlo.multiply %n, %four : tensor<i32>
  %1 = stablehlo.reshape %0 : (tensor<i32>) -> tensor<1xi32>
  %2 = stablehlo.dynamic_reshape %x, %1 : (tensor<?x4xf32, [@b, 4]>, tensor<1xi32>) -> tensor<?xf32>
  return %2 : tensor<?xf32>
}
// CHECK-LABEL: func.func @main
// CHECK-NEXT: %[[S:.*]] = "disc.shape"() {dims = [@"4*b"]} : () -> tensor<1xi32>
// CHECK-NEXT: stablehlo.dynamic_reshape %arg0, %[[S]]
// CHECK-NEXT: return

// -----

// In branches, too, a number that is computed from sizes is a `disc.shape`, or a constant where every size is known.
func.func @main(%x: tensor<?x4xf32, [@b, 4]>, %p: tensor<i1>) -> tensor<i32> {
  %n = stablehlo.get_dimension_size %x, dim = 0 : (tensor<?x4xf32, [@b, 4]>) -> tensor<i32>
  %m = stablehlo.get_dimension_size %x, dim = 1 : (tensor<?x4xf32, [@b, 4]>) -> tensor<i32>
  %0 = "stablehlo.if"(%p) ({
    %1 = stablehlo.add %n, %m : tensor<i32>
    stablehlo.return %1 : tensor<i32>
  }, {
    %1 = stablehlo.multiply %m, %m : tensor<i32>
    stablehlo.return %1 : tensor<i32>
  }) : (tensor<i1>) -> tensor<i32>
  return %0 : tensor<i32>
}
// CHECK-LABEL: func.func @main
// CHECK-NEXT: "stablehlo.if"(%arg1)
// CHECK-NEXT: %[[S:.*]] = "disc.shape"() {dims = [@"b + 4"]} : () -> tensor<i32>
// CHECK-NEXT: stablehlo.return %[[S]]
// CHECK: %[[C:.*]] = stablehlo.constant dense<16> : tensor<i32>
// CHECK-NEXT: stablehlo.return %[[C]]

// -----

// Arithmetic with numbers from data stays, and so does a comparison of sizes that no fact decides; `b >= 0` is always true.
func.func @main(%x: tensor<?xf32, [@b]>, %i: tensor<i32>) -> (tensor<i32>, tensor<i1>, tensor<i1>) {
  %n = stablehlo.get_dimension_size %x, dim = 0 : (tensor<?xf32, [@b]>) -> tensor<i32>
  %zero = stablehlo.constant dense<0> : tensor<i32>
  %0 = stablehlo.multiply %n, %i : tensor<i32>
  %1 = stablehlo.compare GT, %n, %zero : (tensor<i32>, tensor<i32>) -> tensor<i1>
  %2 = stablehlo.compare GE, %n, %zero : (tensor<i32>, tensor<i32>) -> tensor<i1>
  return %0, %1, %2 : tensor<i32>, tensor<i1>, tensor<i1>
}
// CHECK-LABEL: func.func @main
// CHECK: %[[N:.*]] = "disc.shape"() {dims = [@b]} : () -> tensor<i32>
// CHECK: %[[P:.*]] = stablehlo.multiply %[[N]], %arg1
// CHECK: %[[GT:.*]] = stablehlo.compare GT, %[[N]]
// CHECK: %[[TRUE:.*]] = stablehlo.constant dense<true>
// CHECK: return %[[P]], %[[GT]], %[[TRUE]]

// -----

// What a `disc.bind` reads is data up to there: the sum is computed, and is a size behind it.
func.func @main(%x: tensor<?x4xf32, [@b, 4]>, %i: tensor<i32>) -> tensor<?xf32> {
  %one = stablehlo.constant dense<1> : tensor<i32>
  %0 = stablehlo.add %i, %one : tensor<i32>
  %1 = stablehlo.reshape %0 : (tensor<i32>) -> tensor<1xi32>
  %2 = stablehlo.dynamic_reshape %x, %1 : (tensor<?x4xf32, [@b, 4]>, tensor<1xi32>) -> tensor<?xf32>
  return %2 : tensor<?xf32>
}
// CHECK-LABEL: func.func @main
// CHECK: %[[SUM:.*]] = stablehlo.add %arg1, %
// CHECK-NEXT: "disc.bind"(%[[SUM]])
// CHECK-NEXT: %[[S:.*]] = "disc.shape"() {dims = [@"4*b"]} : () -> tensor<1xi32>
// CHECK-NEXT: stablehlo.dynamic_reshape %arg0, %[[S]]
