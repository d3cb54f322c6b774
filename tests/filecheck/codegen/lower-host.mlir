// RUN: opt --pass-pipeline='annotate,simplify,fuse,plan,kernels,host,lower-host' --split-input-file %s | filecheck %s

// Kernels stay, and have entries that unpack blocks of arguments; what runs is calls of the runtime, with micro-kernels
// that are declared: programs share these.
func.func @main(%x: tensor<?x8xf32, [@s, 8]>, %w: tensor<8x16xf32>) -> tensor<?x16xf32, [@s, 16]> {
  %0 = stablehlo.negate %x : tensor<?x8xf32, [@s, 8]>
  %1 = stablehlo.dot_general %0, %w, contracting_dims = [1] x [0] : (tensor<?x8xf32, [@s, 8]>, tensor<8x16xf32>) -> tensor<?x16xf32, [@s, 16]>
  %2 = stablehlo.abs %1 : tensor<?x16xf32, [@s, 16]>
  return %2 : tensor<?x16xf32, [@s, 16]>
}
// CHECK-LABEL: module {
// CHECK: llvm.func @gemm_f32(i64, !llvm.ptr,
// CHECK: func.func private @loop_negate(
// CHECK: func.func private @epilogue_abs(
// CHECK: llvm.func @loop_negate_entry(%[[BLOCK:.*]]: !llvm.ptr, %{{.*}}: i64, %{{.*}}: i64) {
// CHECK-NEXT: %[[WORD:.*]] = llvm.getelementptr %[[BLOCK]][0]
// CHECK-NEXT: llvm.load %[[WORD]] : !llvm.ptr -> !llvm.ptr
// CHECK: func.call @loop_negate(
// CHECK: llvm.func @disc_plan(%{{.*}}: !llvm.ptr, %{{.*}}: !llvm.ptr) -> i64 {
// CHECK: "llvm.intr.smul.with.overflow"
// CHECK: llvm.func @disc_run(%[[RT:.*]]: !llvm.ptr, %{{.*}}: !llvm.ptr, %{{.*}}: !llvm.ptr, %{{.*}}: !llvm.ptr) {
// CHECK: %[[ENTRY:.*]] = llvm.mlir.addressof @loop_negate_entry
// CHECK: %[[FIRST:.*]] = llvm.getelementptr %[[RT]][0]
// CHECK-NEXT: %[[LAUNCH:.*]] = llvm.load %[[FIRST]]
// CHECK-NEXT: llvm.call %[[LAUNCH]](%[[RT]], %[[ENTRY]],
// CHECK: llvm.mlir.addressof @gemm_f32 :
// CHECK: llvm.mlir.addressof @epilogue_abs_entry
// CHECK: %[[SECOND:.*]] = llvm.getelementptr %[[RT]][1]
// CHECK-NEXT: %[[DOT:.*]] = llvm.load %[[SECOND]]
// CHECK-NEXT: llvm.call %[[DOT]](%[[RT]],
// CHECK-NEXT: llvm.return
// CHECK-NOT: disc_host

// -----

// A loop is branches between blocks, and the runtime is told of some of its trips; a kernel with one item of work is called
// without the runtime.
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
// CHECK-LABEL: module {
// CHECK: llvm.func @disc_run(
// CHECK: llvm.call @loop_entry(
// CHECK: %[[COPY:.*]] = llvm.mlir.addressof @copy_bytes_entry
// CHECK: llvm.call %{{.*}}(%arg0, %[[COPY]],
// CHECK: llvm.store %{{.*}}, %[[TRIPS:.*]] : i64, !llvm.ptr
// CHECK: %[[ASKS:.*]] = llvm.icmp "ne" %[[TELL:[0-9]+]], %{{.*}} : !llvm.ptr
// CHECK: %[[REVERSE:.*]] = llvm.mlir.addressof @loop_reverse_entry
// CHECK: llvm.br ^[[CONDITION:bb[0-9]+]]
// CHECK-NEXT: ^[[CONDITION]]:
// CHECK-NEXT: llvm.call @loop_compare_entry(
// CHECK-NEXT: %[[BYTE:.*]] = llvm.load {{.*}} -> i8
// CHECK-NEXT: %[[TRUTH:.*]] = llvm.icmp "ne" %[[BYTE]],
// CHECK-NEXT: llvm.cond_br %[[TRUTH]], ^[[BODY:bb[0-9]+]], ^[[EXIT:bb[0-9]+]]
// CHECK-NEXT: ^[[BODY]]:
// CHECK-NEXT: %[[OLD:.*]] = llvm.load %[[TRIPS]] : !llvm.ptr -> i64
// CHECK-NEXT: %[[COUNT:.*]] = llvm.add %[[OLD]],
// CHECK-NEXT: llvm.store %[[COUNT]], %[[TRIPS]]
// CHECK-NEXT: %[[REST:.*]] = llvm.and %[[COUNT]],
// CHECK-NEXT: %[[SEEN:.*]] = llvm.icmp "eq" %[[REST]],
// CHECK-NEXT: %[[TOLD:.*]] = llvm.and %[[ASKS]], %[[SEEN]]
// CHECK-NEXT: llvm.cond_br %[[TOLD]], ^[[ASK:bb[0-9]+]], ^[[TRIP:bb[0-9]+]]
// CHECK-NEXT: ^[[ASK]]:
// CHECK-NEXT: llvm.call %[[TELL]](%arg0) : !llvm.ptr, (!llvm.ptr) -> ()
// CHECK-NEXT: llvm.br ^[[TRIP]]
// CHECK-NEXT: ^[[TRIP]]:
// CHECK-NEXT: llvm.call %[[LAUNCH:.*]](%arg0, %[[REVERSE]],
// CHECK-NEXT: llvm.call @loop_add_entry(
// CHECK-NEXT: llvm.call %[[LAUNCH]](%arg0, %[[COPY]],
// CHECK-NEXT: llvm.br ^[[CONDITION]]
// CHECK-NEXT: ^[[EXIT]]:
// CHECK-NEXT: llvm.return

// -----

// A choice is a switch.
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
// CHECK-LABEL: module {
// CHECK: llvm.func @disc_run(
// CHECK: %[[K:.*]] = llvm.load %{{.*}} : !llvm.ptr -> i32
// CHECK: %[[COPY:.*]] = llvm.mlir.addressof @copy_bytes_entry
// CHECK: %[[ABS:.*]] = llvm.mlir.addressof @loop_abs_entry
// CHECK: %[[NEGATE:.*]] = llvm.mlir.addressof @loop_negate_entry
// CHECK: llvm.switch %[[K]] : i32, ^[[LAST:bb[0-9]+]] [
// CHECK-NEXT: 0: ^[[FIRST:bb[0-9]+]],
// CHECK-NEXT: 1: ^[[SECOND:bb[0-9]+]]
// CHECK: ^[[LAST]]:
// CHECK-NEXT: llvm.call %{{.*}}(%arg0, %[[COPY]],
// CHECK-NEXT: llvm.br ^[[EXIT:bb[0-9]+]]
// CHECK-NEXT: ^[[FIRST]]:
// CHECK-NEXT: llvm.call %{{.*}}(%arg0, %[[ABS]],
// CHECK-NEXT: llvm.br ^[[EXIT]]
// CHECK-NEXT: ^[[SECOND]]:
// CHECK-NEXT: llvm.call %{{.*}}(%arg0, %[[NEGATE]],
// CHECK-NEXT: llvm.br ^[[EXIT]]
// CHECK-NEXT: ^[[EXIT]]:
// CHECK-NEXT: llvm.return

// -----

// Sizes that are read from data go into a table, from which the second plan starts.
func.func @main(%n: tensor<i32>) -> tensor<?xi32> {
  %r = stablehlo.reshape %n : (tensor<i32>) -> tensor<1xi32>
  %i = stablehlo.dynamic_iota %r, dim = 0 : (tensor<1xi32>) -> tensor<?xi32>
  return %i : tensor<?xi32>
}
// CHECK-LABEL: module {
// CHECK: llvm.func @disc_run(
// CHECK: %[[N:.*]] = llvm.load %{{.*}} : !llvm.ptr -> i32
// CHECK-NEXT: %[[WIDE:.*]] = llvm.sext %[[N]] : i32 to i64
// CHECK-NEXT: %[[PLACE:.*]] = llvm.getelementptr %arg1[2]
// CHECK-NEXT: %[[TABLE:.*]] = llvm.load %[[PLACE]]
// CHECK-NEXT: %[[ENTRY:.*]] = llvm.getelementptr %[[TABLE]][0]
// CHECK-NEXT: llvm.store %[[WIDE]], %[[ENTRY]]
// CHECK: llvm.func @disc_plan_1(%[[SYMBOLS:.*]]: !llvm.ptr, %{{.*}}: !llvm.ptr) -> i64 {
// CHECK: %[[FIRST:.*]] = llvm.getelementptr %[[SYMBOLS]][0]
// CHECK-NEXT: %[[SIZE:.*]] = llvm.load %[[FIRST]]
// CHECK: llvm.icmp "sge" %[[SIZE]],
// CHECK: llvm.func @disc_run_1(
// CHECK: llvm.mlir.addressof @loop_dynamic_iota_entry
