// RUN: opt --pass-pipeline='annotate,simplify,fuse,view-pieces' --split-input-file %s | filecheck %s

// A loop over layers: the weights of each are read where they lie, and the counter is no kernel's.
func.func @main(%x: tensor<3x64xf32>, %w: tensor<12x64x64xf32>) -> tensor<3x64xf32> {
  %zero = stablehlo.constant dense<0> : tensor<i32>
  %one = stablehlo.constant dense<1> : tensor<i32>
  %count = stablehlo.constant dense<12> : tensor<i32>
  %r:2 = stablehlo.while(%i = %zero, %a = %x) : tensor<i32>, tensor<3x64xf32>
   cond {
    %go = stablehlo.compare LT, %i, %count : (tensor<i32>, tensor<i32>) -> tensor<i1>
    stablehlo.return %go : tensor<i1>
  } do {
    %layer = stablehlo.dynamic_slice %w, %i, %zero, %zero, sizes = [1, 64, 64] : (tensor<12x64x64xf32>, tensor<i32>, tensor<i32>, tensor<i32>) -> tensor<1x64x64xf32>
    %b = stablehlo.reshape %layer : (tensor<1x64x64xf32>) -> tensor<64x64xf32>
    %y = stablehlo.dot_general %a, %b, contracting_dims = [1] x [0] : (tensor<3x64xf32>, tensor<64x64xf32>) -> tensor<3x64xf32>
    %next = stablehlo.add %i, %one : tensor<i32>
    stablehlo.return %next, %y : tensor<i32>, tensor<3x64xf32>
  }
  return %r#1 : tensor<3x64xf32>
}
// CHECK-LABEL: func.func @main
// CHECK: do {
// CHECK: %[[PIECE:.*]] = "disc.piece"(%{{.*}}, %iterArg) {part = {offset = 0 : i64, starts = [{bits = 32 : i64, element = 0 : i64, most = 11 : i64, step = 16384 : i64}]}}
// CHECK-NEXT: %[[LAYER:.*]] = stablehlo.reshape %[[PIECE]]
// CHECK-NEXT: func.call @dot_{{.*}}(%{{.*}}, %[[LAYER]])
// CHECK-NOT: dynamic_slice

// -----

// What computes where a piece begins is a kernel of its own.
func.func @main(%x: tensor<3x64xf32>, %w: tensor<12x64x64xf32>, %i: tensor<i32>) -> tensor<3x64xf32> {
  %zero = stablehlo.constant dense<0> : tensor<i32>
  %count = stablehlo.constant dense<12> : tensor<i32>
  %at = stablehlo.remainder %i, %count : tensor<i32>
  %layer = stablehlo.dynamic_slice %w, %at, %zero, %zero, sizes = [1, 64, 64] : (tensor<12x64x64xf32>, tensor<i32>, tensor<i32>, tensor<i32>) -> tensor<1x64x64xf32>
  %b = stablehlo.reshape %layer : (tensor<1x64x64xf32>) -> tensor<64x64xf32>
  %y = stablehlo.dot_general %x, %b, contracting_dims = [1] x [0] : (tensor<3x64xf32>, tensor<64x64xf32>) -> tensor<3x64xf32>
  return %y : tensor<3x64xf32>
}
// CHECK-LABEL: func.func @main
// CHECK: %[[AT:.*]] = call @[[STARTS:.*_starts]](%{{.*}}) : (tensor<i32>) -> tensor<i32>
// CHECK: "disc.piece"(%{{.*}}, %[[AT]])
// CHECK: func.func private @[[STARTS]]
// CHECK-NEXT: stablehlo.constant
// CHECK-NEXT: stablehlo.remainder
// CHECK-NEXT: return

// -----

// Rows of 5 elements do not begin as buffers do, and what is returned has a buffer of its own.
func.func @main(%x: tensor<3x5xf32>, %w: tensor<12x5x5xf32>, %v: tensor<12x16x16xf32>) -> (tensor<3x5xf32>, tensor<1x16x16xf32>, tensor<16x16xf32>) {
  %part = stablehlo.slice %w [3:4, 0:5, 0:5] : (tensor<12x5x5xf32>) -> tensor<1x5x5xf32>
  %b = stablehlo.reshape %part : (tensor<1x5x5xf32>) -> tensor<5x5xf32>
  %y = stablehlo.dot_general %x, %b, contracting_dims = [1] x [0] : (tensor<3x5xf32>, tensor<5x5xf32>) -> tensor<3x5xf32>
  %kept = stablehlo.slice %v [3:4, 0:16, 0:16] : (tensor<12x16x16xf32>) -> tensor<1x16x16xf32>
  %c = stablehlo.reshape %kept : (tensor<1x16x16xf32>) -> tensor<16x16xf32>
  %z = stablehlo.dot_general %c, %c, contracting_dims = [1] x [0] : (tensor<16x16xf32>, tensor<16x16xf32>) -> tensor<16x16xf32>
  return %y, %kept, %z : tensor<3x5xf32>, tensor<1x16x16xf32>, tensor<16x16xf32>
}
// CHECK-LABEL: func.func @main
// CHECK-NOT: disc.piece
// CHECK: return

// -----

// An array of symbolic sizes, of which a list of integers says where the piece begins.
func.func @main(%x: tensor<3x64xf32>, %w: tensor<5x?x64xf32, [5, @s, 64]>, %at: tensor<3xi32>) -> tensor<3x?xf32, [3, @s]> {
  %ones = stablehlo.constant dense<1> : tensor<3xi32>
  %shape = "disc.shape"() {dims = [1, @s, 64]} : () -> tensor<3xi32>
  %end = stablehlo.add %at, %shape : tensor<3xi32>
  %part = stablehlo.real_dynamic_slice %w, %at, %end, %ones : (tensor<5x?x64xf32, [5, @s, 64]>, tensor<3xi32>, tensor<3xi32>, tensor<3xi32>) -> tensor<1x?x64xf32, [1, @s, 64]>
  %sizes = "disc.shape"() {dims = [@s, 64]} : () -> tensor<2xi32>
  %b = stablehlo.dynamic_reshape %part, %sizes : (tensor<1x?x64xf32, [1, @s, 64]>, tensor<2xi32>) -> tensor<?x64xf32, [@s, 64]>
  %y = stablehlo.dot_general %x, %b, contracting_dims = [1] x [1] : (tensor<3x64xf32>, tensor<?x64xf32, [@s, 64]>) -> tensor<3x?xf32, [3, @s]>
  return %y : tensor<3x?xf32, [3, @s]>
}
// CHECK-LABEL: func.func @main
// CHECK: "disc.piece"(%arg1, %arg2) {part = {offset = 0 : i64, starts = [{bits = 32 : i64, element = 0 : i64, most = 4 : i64, step = @"256*s"}]}}
// CHECK-NOT: real_dynamic_slice

// -----

// A product of any number of rows reads a piece.
func.func @main(%x: tensor<?x64xf32, [@s, 64]>, %w: tensor<12x64x64xf32>) -> tensor<?x64xf32, [@s, 64]> {
  %layer = stablehlo.slice %w [3:4, 0:64, 0:64] : (tensor<12x64x64xf32>) -> tensor<1x64x64xf32>
  %b = stablehlo.reshape %layer : (tensor<1x64x64xf32>) -> tensor<64x64xf32>
  %y = stablehlo.dot_general %x, %b, contracting_dims = [1] x [0] : (tensor<?x64xf32, [@s, 64]>, tensor<64x64xf32>) -> tensor<?x64xf32, [@s, 64]>
  return %y : tensor<?x64xf32, [@s, 64]>
}
// CHECK-LABEL: func.func @main
// CHECK: "disc.piece"(%arg1) {part = {offset = 49152 : i64}}
// CHECK-NOT: stablehlo.slice
