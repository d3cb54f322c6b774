// RUN: opt --pass-pipeline='annotate,simplify,count-flops' --split-input-file %s | filecheck %s

// A multiply-add of a product is two operations, and an elementwise op is one per element.
func.func @main(%x: tensor<?x8xf32, [@s, 8]>, %w: tensor<8x16xf32>) -> tensor<?x16xf32> {
  %0 = stablehlo.dot_general %x, %w, contracting_dims = [1] x [0] : (tensor<?x8xf32, [@s, 8]>, tensor<8x16xf32>) -> tensor<?x16xf32>
  %1 = stablehlo.tanh %0 : tensor<?x16xf32>
  return %1 : tensor<?x16xf32>
}
// CHECK: module attributes {disc.flops = @"272*s"

// -----

// The body of a loop counts as often as it runs, the addition to its counter included.
func.func @main(%x: tensor<?xf32, [@s]>) -> tensor<?xf32, [@s]> {
  %zero = stablehlo.constant dense<0> : tensor<i32>
  %one = stablehlo.constant dense<1> : tensor<i32>
  %ten = stablehlo.constant dense<10> : tensor<i32>
  %r:2 = stablehlo.while(%i = %zero, %a = %x) : tensor<i32>, tensor<?xf32, [@s]>
   cond {
    %go = stablehlo.compare LT, %i, %ten : (tensor<i32>, tensor<i32>) -> tensor<i1>
    stablehlo.return %go : tensor<i1>
  } do {
    %t = stablehlo.tanh %a : tensor<?xf32, [@s]>
    %next = stablehlo.add %i, %one : tensor<i32>
    stablehlo.return %next, %t : tensor<i32>, tensor<?xf32, [@s]>
  }
  return %r#1 : tensor<?xf32, [@s]>
}
// CHECK: module attributes {disc.flops = @"10*s + 10"

// -----

// Of a choice, the branch that takes longest counts.
func.func @main(%p: tensor<i1>, %x: tensor<?xf32, [@s]>) -> tensor<?xf32, [@s]> {
  %0 = "stablehlo.if"(%p) ({
    %1 = stablehlo.tanh %x : tensor<?xf32, [@s]>
    %2 = stablehlo.add %1, %x : tensor<?xf32, [@s]>
    %3 = stablehlo.exponential %2 : tensor<?xf32, [@s]>
    stablehlo.return %3 : tensor<?xf32, [@s]>
  }, {
    %1 = stablehlo.abs %x : tensor<?xf32, [@s]>
    stablehlo.return %1 : tensor<?xf32, [@s]>
  }) : (tensor<i1>) -> tensor<?xf32, [@s]>
  return %0 : tensor<?xf32, [@s]>
}
// CHECK: module attributes {disc.flops = @"3*s"

// -----

// What only moves elements is no arithmetic.
func.func @main(%x: tensor<?x8xf32, [@s, 8]>) -> tensor<8x?xf32> {
  %0 = stablehlo.reverse %x, dims = [1] : tensor<?x8xf32, [@s, 8]>
  %1 = stablehlo.transpose %0, dims = [1, 0] : (tensor<?x8xf32, [@s, 8]>) -> tensor<8x?xf32>
  return %1 : tensor<8x?xf32>
}
// CHECK: module attributes {disc.flops = 0 : i64
