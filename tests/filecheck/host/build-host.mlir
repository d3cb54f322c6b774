// RUN: opt --pass-pipeline='annotate,simplify,fuse,plan,kernels,build-host' --split-input-file %s | filecheck %s

// Straight-line code: a kernel whose result is a part of the arena, and a product whose epilogue writes the program's.
func.func @main(%x: tensor<?x8xf32, [@s, 8]>, %w: tensor<8x16xf32>) -> tensor<?x16xf32, [@s, 16]> {
  %0 = stablehlo.tanh %x : tensor<?x8xf32, [@s, 8]>
  %1 = stablehlo.dot_general %0, %w, contracting_dims = [1] x [0] : (tensor<?x8xf32, [@s, 8]>, tensor<8x16xf32>) -> tensor<?x16xf32, [@s, 16]>
  %2 = stablehlo.abs %1 : tensor<?x16xf32, [@s, 16]>
  return %2 : tensor<?x16xf32, [@s, 16]>
}
// CHECK-LABEL: module attributes {disc.flops
// CHECK: "disc_host.plan"() {call = {arena = @"64*floordiv(s + 1, 2)", checks = [{{.*}}relation = "s >= 0"}], writes = array<i64: 0>}}
// CHECK-NEXT: func.func @disc_run(%[[X:.*]]: memref<?xi8>, %[[W:.*]]: memref<?xi8>, %[[Y:.*]]: memref<?xi8>, %[[ARENA:.*]]: memref<?xi8>) {
// CHECK: %[[SIZE:.*]] = "disc_host.size"() {call = {value = @"32*s"}}
// CHECK-NEXT: %[[T:.*]] = memref.view %[[ARENA]][%c0][%[[SIZE]]]
// CHECK-NEXT: "disc_host.launch"(%[[X]], %[[T]]) {call = {grain = {{.*}}, items = @"8*s", kernel = @loop_tanh, sizes = [@"8*s"]}, fusion = "loop_0"
// CHECK-NEXT: "disc_host.gemm"(%[[T]], %[[W]], %[[Y]]) {call = {products = [{epilogue = {operands = array<i64: -1, 2>, use = {{{.*}}kernel = @epilogue_abs
// CHECK-NEXT: return
// CHECK: module @kernels
// CHECK: @loop_tanh
// CHECK: @epilogue_abs

// -----

// A loop: its condition is loaded, and what it carries is copied where it has to be.
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
// CHECK-LABEL: module attributes {disc.flops
// CHECK: func.func @disc_run(
// CHECK: "disc_host.launch"(%[[I:.*]]) {{.*}}kernel = @loop,
// CHECK-NEXT: "disc_host.copy"(%arg1, %arg2) {call = {bytes = @"4*s"}}
// CHECK: scf.while
// CHECK-NEXT: "disc_host.launch"(%[[I]], %arg0, %[[GO:.*]]) {{.*}}kernel = @loop_compare,
// CHECK-NEXT: %[[BYTE:.*]] = memref.view %[[GO]]
// CHECK-NEXT: %[[LOADED:.*]] = memref.load %[[BYTE]][] : memref<i8>
// CHECK-NEXT: %[[TRUTH:.*]] = arith.cmpi ne, %[[LOADED]], %{{.*}} : i8
// CHECK-NEXT: scf.condition(%[[TRUTH]])
// CHECK-NEXT: } do {
// CHECK-NEXT: "disc_host.launch"(%arg2, %[[R:.*]]) {{.*}}kernel = @loop_reverse,
// CHECK-NEXT: "disc_host.launch"(%[[I]], %[[I]]) {{.*}}kernel = @loop_add,
// CHECK-NEXT: "disc_host.copy"(%[[R]], %arg2) {call = {bytes = @"4*s"}}
// CHECK-NEXT: scf.yield

// -----

// A choice: the last branch is the default, and copies its argument.
func.func @main(%k: tensor<i32>, %x: tensor<?xf32, [@s]>) -> tensor<?xf32, [@s]> {
  %0 = "stablehlo.case"(%k) ({
    %1 = stablehlo.abs %x : tensor<?xf32, [@s]>
    stablehlo.return %1 : tensor<?xf32, [@s]>
  }, {
    %1 = stablehlo.negate %x : tensor<?xf32, [@s]>
    stablehlo.return %1 : tensor<?xf32, [@s]>
  }, {
    stablehlo.return %x : tensor<?xf32, [@s]>
  }) : (tensor<i32>) -> tensor<?xf32, [@s]>
  return %0 : tensor<?xf32, [@s]>
}
// CHECK-LABEL: module attributes {disc.flops
// CHECK: func.func @disc_run(
// CHECK: %[[K:.*]] = memref.load %{{.*}}[] : memref<i32>
// CHECK-NEXT: %[[INDEX:.*]] = arith.index_cast %[[K]] : i32 to index
// CHECK-NEXT: scf.index_switch %[[INDEX]]
// CHECK-NEXT: case 0 {
// CHECK-NEXT: "disc_host.launch"(%arg1, %arg2) {{.*}}kernel = @loop_abs,
// CHECK: case 1 {
// CHECK-NEXT: "disc_host.launch"(%arg1, %arg2) {{.*}}kernel = @loop_negate,
// CHECK: default {
// CHECK-NEXT: "disc_host.copy"(%arg1, %arg2) {call = {bytes = @"4*s"}}
// CHECK-NEXT: }

// -----

// A size that is read from data: the second function has its own plan, which needs it.
func.func @main(%n: tensor<i32>) -> tensor<?xi32> {
  %r = stablehlo.reshape %n : (tensor<i32>) -> tensor<1xi32>
  %i = stablehlo.dynamic_iota %r, dim = 0 : (tensor<1xi32>) -> tensor<?xi32>
  return %i : tensor<?xi32>
}
// CHECK-LABEL: module attributes {disc.flops
// CHECK: "disc_host.plan"() {call = {arena = 0 : i64, checks = [], writes = array<i64>}}
// CHECK-NEXT: func.func @disc_run(
// CHECK-NEXT: "disc_host.bind"(%arg0) {call = {element = i32, symbols = ["n0"]}}
// CHECK-NEXT: return
// CHECK: "disc_host.plan"() {call = {arena = 0 : i64, checks = [{kind = "data", {{.*}}relation = "n0 >= 0"}], reads = ["n0"], writes = array<i64: 0>}}
// CHECK-NEXT: func.func @disc_run_1(
// CHECK-NEXT: "disc_host.launch"(%arg1) {call = {grain = {{.*}}, items = @n0, kernel = @loop_dynamic_iota, sizes = [@n0]}
