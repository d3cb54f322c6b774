// RUN: opt --pass-pipeline='annotate,simplify,fuse,split-segments,assign-buffers' --split-input-file %s | filecheck %s

// The last product is written to the result, and the third one where the first has been.
func.func @main(%x: tensor<?x8xf32, [@s, 8]>, %w: tensor<8x8xf32>) -> tensor<?x8xf32, [@s, 8]> {
  %0 = stablehlo.dot_general %x, %w, contracting_dims = [1] x [0] : (tensor<?x8xf32, [@s, 8]>, tensor<8x8xf32>) -> tensor<?x8xf32, [@s, 8]>
  %1 = stablehlo.dot_general %0, %w, contracting_dims = [1] x [0] : (tensor<?x8xf32, [@s, 8]>, tensor<8x8xf32>) -> tensor<?x8xf32, [@s, 8]>
  %2 = stablehlo.dot_general %1, %w, contracting_dims = [1] x [0] : (tensor<?x8xf32, [@s, 8]>, tensor<8x8xf32>) -> tensor<?x8xf32, [@s, 8]>
  %3 = stablehlo.dot_general %2, %w, contracting_dims = [1] x [0] : (tensor<?x8xf32, [@s, 8]>, tensor<8x8xf32>) -> tensor<?x8xf32, [@s, 8]>
  return %3 : tensor<?x8xf32, [@s, 8]>
}
// CHECK: module attributes {disc.arenas = [@"128*floordiv(s + 1, 2)"]
// CHECK-LABEL: func.func @main
// CHECK-NEXT: call @dot_0({{.*}}) {disc.buffers = [#disc.buffer<"arena", {bytes = @"32*s", offset = 0 : i64}>]}
// CHECK-NEXT: call @dot_1({{.*}}) {disc.buffers = [#disc.buffer<"arena", {bytes = @"32*s", offset = @"64*floordiv(s + 1, 2)"}>]}
// CHECK-NEXT: call @dot_2({{.*}}) {disc.buffers = [#disc.buffer<"arena", {bytes = @"32*s", offset = 0 : i64}>]}
// CHECK-NEXT: call @dot_3({{.*}}) {disc.buffers = [#disc.buffer<"result", {index = 0 : i64}>]}

// -----

// The first product is read once more behind the third, which needs a place of its own.
func.func @main(%x: tensor<?x8xf32, [@s, 8]>, %w: tensor<8x8xf32>) -> tensor<?x8xf32, [@s, 8]> {
  %0 = stablehlo.dot_general %x, %w, contracting_dims = [1] x [0] : (tensor<?x8xf32, [@s, 8]>, tensor<8x8xf32>) -> tensor<?x8xf32, [@s, 8]>
  %1 = stablehlo.dot_general %0, %w, contracting_dims = [1] x [0] : (tensor<?x8xf32, [@s, 8]>, tensor<8x8xf32>) -> tensor<?x8xf32, [@s, 8]>
  %2 = stablehlo.dot_general %1, %w, contracting_dims = [1] x [0] : (tensor<?x8xf32, [@s, 8]>, tensor<8x8xf32>) -> tensor<?x8xf32, [@s, 8]>
  %3 = stablehlo.dot_general %2, %0, contracting_dims = [0] x [0] : (tensor<?x8xf32, [@s, 8]>, tensor<?x8xf32, [@s, 8]>) -> tensor<8x8xf32>
  %4 = stablehlo.dot_general %x, %3, contracting_dims = [1] x [0] : (tensor<?x8xf32, [@s, 8]>, tensor<8x8xf32>) -> tensor<?x8xf32, [@s, 8]>
  return %4 : tensor<?x8xf32, [@s, 8]>
}
// CHECK-LABEL: func.func @main
// CHECK-NEXT: call @dot_0({{.*}}) {disc.buffers = [#disc.buffer<"arena", {bytes = @"32*s", offset = 0 : i64}>]}
// CHECK-NEXT: call @dot_1({{.*}}) {disc.buffers = [#disc.buffer<"arena", {bytes = @"32*s", offset = @"64*floordiv(s + 1, 2)"}>]}
// CHECK-NEXT: call @dot_2({{.*}}) {disc.buffers = [#disc.buffer<"arena", {bytes = @"32*s", offset = @"max(256, 64*floordiv(s + 1, 2)) + 64*floordiv(s + 1, 2)"}>]}
// CHECK-NEXT: call @dot_3({{.*}}) {disc.buffers = [#disc.buffer<"arena", {bytes = 256 : i64, offset = @"64*floordiv(s + 1, 2)"}>]}
// CHECK-NEXT: call @dot_4({{.*}}) {disc.buffers = [#disc.buffer<"result", {index = 0 : i64}>]}

// -----

// The next counter is written where the present one is; a reversed array is not, but elsewhere.
func.func @main(%n: tensor<i32>, %x: tensor<?xf32, [@s]>) -> tensor<?xf32, [@s]> {
  %zero = stablehlo.constant dense<0> : tensor<i32>
  %one = stablehlo.constant dense<1> : tensor<i32>
  %r:2 = stablehlo.while(%i = %zero, %a = %x) : tensor<i32>, tensor<?xf32, [@s]>
   cond {
    %go = stablehlo.compare LT, %i, %n : (tensor<i32>, tensor<i32>) -> tensor<i1>
    stablehlo.return %go : tensor<i1>
  } do {
    %t = stablehlo.reverse %a, dims = [0] : tensor<?xf32, [@s]>
    %next = stablehlo.add %i, %one : tensor<i32>
    stablehlo.return %next, %t : tensor<i32>, tensor<?xf32, [@s]>
  }
  return %r#1 : tensor<?xf32, [@s]>
}
// CHECK-LABEL: func.func @main
// CHECK-NEXT: call @loop_0() {disc.buffers = [#disc.buffer<"arena", {bytes = 4 : i64, offset = 0 : i64}>]}
// CHECK-NEXT: stablehlo.while({{.*}} attributes {disc.buffers = [#disc.buffer<"arena", {bytes = 4 : i64, offset = 0 : i64}>, #disc.buffer<"result", {index = 0 : i64}>]}
// CHECK: do {
// CHECK-NEXT: %[[T:.*]] = func.call @loop_2({{.*}}) {disc.buffers = [#disc.buffer<"arena", {bytes = @"4*s", offset = 64 : i64}>]}
// CHECK-NEXT: %[[I:.*]] = func.call @loop_3({{.*}}) {disc.buffers = [#disc.buffer<"arena", {bytes = 4 : i64, offset = 0 : i64}>]}
// CHECK-NEXT: stablehlo.return %[[I]], %[[T]]

// -----

// What is of a size that is read from data lies in the arena of a later segment.
func.func @main(%n: tensor<i32>, %w: tensor<8x8xf32>) -> tensor<?x8xf32> {
  %n1 = stablehlo.reshape %n : (tensor<i32>) -> tensor<1xi32>
  %c = stablehlo.constant dense<8> : tensor<1xi32>
  %d = stablehlo.concatenate %n1, %c, dim = 0 : (tensor<1xi32>, tensor<1xi32>) -> tensor<2xi32>
  %i = stablehlo.dynamic_iota %d, dim = 0 : (tensor<2xi32>) -> tensor<?x8xf32>
  %t = stablehlo.tanh %i : tensor<?x8xf32>
  %0 = stablehlo.dot_general %t, %w, contracting_dims = [1] x [0] : (tensor<?x8xf32>, tensor<8x8xf32>) -> tensor<?x8xf32>
  return %0 : tensor<?x8xf32>
}
// CHECK: module attributes {disc.arenas = [0, @"64*floordiv(n0 + 1, 2)"]
// CHECK-LABEL: func.func @main
// CHECK-NEXT: "disc.bind"(%arg0) {symbols = [@n0]}
// CHECK: call @loop_0() {disc.buffers = [#disc.buffer<"arena", {bytes = @"32*n0", offset = 0 : i64, segment = 1 : i64}>], disc.segment = 1 : i64}
// CHECK: call @dot_1({{.*}}) {disc.buffers = [#disc.buffer<"result", {index = 0 : i64}>], disc.segment = 1 : i64}
