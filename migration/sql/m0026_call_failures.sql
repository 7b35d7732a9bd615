-- Why a call failed, and whose fault that was, as words. Both are null where the call was answered.
ALTER TABLE pipeline_steps ADD COLUMN cause varchar;
ALTER TABLE pipeline_steps ADD COLUMN blame varchar;
