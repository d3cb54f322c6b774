module {
  irdl.dialect @disc {
    irdl.attribute @fusion {
      %0 = irdl.base "#builtin.string" 
      %1 = irdl.base "#builtin.dictionary" 
      irdl.parameters(kind: %0, roles: %1)
    }
    irdl.attribute @buffer {
      %0 = irdl.base "#builtin.string" 
      %1 = irdl.base "#builtin.dictionary" 
      irdl.parameters(space: %0, place: %1)
    }
    irdl.attribute @library {
      %0 = irdl.base "#builtin.dictionary" 
      irdl.parameters(call: %0)
    }
    irdl.attribute @window {
      %0 = irdl.base "#builtin.dictionary" 
      irdl.parameters(window: %0)
    }
    irdl.operation @symbol {
      %0 = irdl.base "#builtin.string" 
      irdl.attributes {"name" = %0}
    }
    irdl.operation @dim {
      %0 = irdl.base "#builtin.string" 
      irdl.attributes {"name" = %0}
    }
    irdl.operation @constraint {
      %0 = irdl.base "#builtin.string" 
      irdl.attributes {"relation" = %0}
    }
    irdl.operation @signature {
      %0 = irdl.base "#builtin.string" 
      irdl.attributes {"name" = %0}
    }
    irdl.operation @shape {
      %0 = irdl.base "#builtin.array" 
      irdl.attributes {"dims" = %0}
      %1 = irdl.any
      irdl.results(result: %1)
    }
    irdl.operation @bind {
      %0 = irdl.any
      irdl.operands(value: %0)
      %1 = irdl.base "#builtin.array" 
      irdl.attributes {"symbols" = %1}
    }
    irdl.operation @nonzero {
      %0 = irdl.any
      irdl.operands(mask: %0)
      %1 = irdl.any
      irdl.results(result: %1)
    }
  }
}

