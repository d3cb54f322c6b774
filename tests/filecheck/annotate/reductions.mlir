// RUN: opt --stage annotate --split-input-file %s | filecheck %s

// A reduction drops the axes that it runs along.
// CHECK-LABEL: module attributes {
// CHECK-NEXT: "disc.signature"()
// CHECK-NOT: disc.constraint
// CHECK: func.func @main(%{{.*}}: tensor<?x3x?xf32, [@b, 3, @s]>) -> tensor<?xf32, [@s]>
// CHECK: stablehlo.reduce({{.*}} : (tensor<?x3x?xf32, [@b, 3, @s]>, tensor<f32>) -> tensor<?xf32, [@s]>
func.func @main(%x: tensor<?x3x?xf32, [@b, 3, @s]>) -> tensor<?xf32> {
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %0 = stablehlo.reduce(%x init: %zero) applies stablehlo.add across dimensions = [0, 1]
    : (tensor<?x3x?xf32, [@b, 3, @s]>, tensor<f32>) -> tensor<?xf32>
  return %0 : tensor<?xf32>
}

// -----

// All inputs of a reduction have one shape: one symbol is left for the axis.
// CHECK-LABEL: module attributes {
// CHECK-NEXT: "disc.signature"()
// CHECK-NEXT: "disc.symbol"() {min = 0 : i64, name = "m"}
// CHECK-NEXT: "disc.symbol"() {min = 0 : i64, name = "s"}
// CHECK-NEXT: func.func @main(%{{.*}}: tensor<?x?xf32, [@m, @s]>, %{{.*}}: tensor<?x?xi32, [@m, @s]>) -> (tensor<?xf32, [@s]>, tensor<?xi32, [@s]>)
func.func @main(%x: tensor<?x?xf32, [@n, @s]>, %y: tensor<?x?xi32, [@m, @s]>) -> (tensor<?xf32>, tensor<?xi32>) {
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %none = stablehlo.constant dense<0> : tensor<i32>
  %0:2 = "stablehlo.reduce"(%x, %y, %zero, %none) <{dimensions = array<i64: 0>}> ({
  ^bb0(%a: tensor<f32>, %i: tensor<i32>, %b: tensor<f32>, %j: tensor<i32>):
    %1 = stablehlo.add %a, %b : tensor<f32>
    %2 = stablehlo.add %i, %j : tensor<i32>
    stablehlo.return %1, %2 : tensor<f32>, tensor<i32>
  }) : (tensor<?x?xf32, [@n, @s]>, tensor<?x?xi32, [@m, @s]>, tensor<f32>, tensor<i32>) -> (tensor<?xf32>, tensor<?xi32>)
  return %0#0, %0#1 : tensor<?xf32>, tensor<?xi32>
}

// -----

// Inputs of a reduction that never have one shape.
// CHECK: error: stablehlo.reduce at line {{[0-9]+}}: the sizes n and n + 1 must be equal and never are
func.func @main(%x: tensor<?xf32, [@n]>, %y: tensor<?xi32, [@"n + 1"]>) -> (tensor<f32>, tensor<i32>) {
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %none = stablehlo.constant dense<0> : tensor<i32>
  %0:2 = "stablehlo.reduce"(%x, %y, %zero, %none) <{dimensions = array<i64: 0>}> ({
  ^bb0(%a: tensor<f32>, %i: tensor<i32>, %b: tensor<f32>, %j: tensor<i32>):
    %1 = stablehlo.add %a, %b : tensor<f32>
    %2 = stablehlo.add %i, %j : tensor<i32>
    stablehlo.return %1, %2 : tensor<f32>, tensor<i32>
  }) : (tensor<?xf32, [@n]>, tensor<?xi32, [@"n + 1"]>, tensor<f32>, tensor<i32>) -> (tensor<f32>, tensor<i32>)
  return %0#0, %0#1 : tensor<f32>, tensor<i32>
}
